"""An S3 server on loopback by moto. It prints its port as JSON, and serves until it is killed."""

import json
import threading

from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(json.dumps({"port": server.get_host_and_port()[1]}), flush=True)
threading.Event().wait()
