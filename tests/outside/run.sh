#!/usr/bin/env bash
# Interoperability tests with third-party programs: a browser, clients for Paystack, Flutterwave,
# M-Pesa and MTN MoMo (npm), Twilio, Termii and Dojah (PyPI) and SMTP (Python's own), an OpenID
# provider, the libraries of Standard Webhooks, OpenSSL, a registry of components, plugins in
# JavaScript and Python, the projects of `tollhouse plugin new`, the API clients, and Schemathesis,
# each against a running sandbox. They also execute the commands in README.md, docs/guides and
# docs/OPERATING.md.
# They need target/debug/sandbox and target/debug/tollhouse (`cargo build`), node 20, npm, python3,
# chromium, curl, docker-registry, jq, openssl and PostgreSQL's clients; if one of these is
# missing, the script reports it and exits with 77. Tests on PostgreSQL are skipped unless
# TOLLHOUSE_TEST_POSTGRES names a server.
set -euo pipefail
# The projects of `tollhouse plugin new` and the API clients are built with `--full` only, because
# each fetches its dependencies.
tests=$(cd "$(dirname "$0")" && ls ./*.test.js)
[ "${1:-}" = --full ] || tests=$(grep -Ev '/(clients|templates)\.test\.js' <<<"$tests")
cd "$(dirname "$0")"
target=$(cd ../.. && pwd)/target

for tool in node npm python3 chromium curl docker-registry jq openssl psql pg_dump; do
    command -v "$tool" >/dev/null || { echo "SKIPPED tests/outside: $tool is not installed" >&2; exit 77; }
done

npm ci --ignore-scripts --no-audit --no-fund
venv=$target/outside/venv
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --requirement requirements.txt

dir=$(mktemp -d)
log=$dir/sandbox.log
database=
stop_sandbox() {
    kill "$sandbox" 2>/dev/null || true
    wait "$sandbox" || true
    [ -z "$database" ] || psql --quiet "$TOLLHOUSE_TEST_POSTGRES" --command "DROP DATABASE $database"
    database=
}
trap 'stop_sandbox; rm -rf "$dir"' EXIT
# Starts a sandbox with these options, and waits until it is ready.
start_sandbox() {
    # Schemathesis sends requests without pauses, and the console shows recorded calls.
    TOLLHOUSE_RATE_PER_S=0 TOLLHOUSE_PLUGIN_RECORDING_RETENTION_HOURS=24 \
        "$target/debug/sandbox" --dir "$dir" --port 0 "$@" >"$log" 2>&1 &
    sandbox=$!
    for _ in $(seq 3000); do
        [ -e "$dir/sandbox.json" ] && return
        kill -0 "$sandbox" 2>/dev/null || { cat "$log" >&2; exit 1; }
        sleep 0.1
    done
}
start_sandbox

export SANDBOX_JSON=$dir/sandbox.json PYTHON=$venv/bin/python CHROMIUM PICTURES=$target/outside
CHROMIUM=$(command -v chromium)
# shellcheck disable=SC2086 # one word per file
node --test --test-concurrency=1 --test-reporter=spec $tests || {
    cat "$log" >&2
    exit 1
}
./schemathesis.sh || {
    tail -n 100 "$log" >&2
    exit 1
}

# The pages for people on the other engine.
if [ -n "${TOLLHOUSE_TEST_POSTGRES:-}" ]; then
    stop_sandbox
    database=outside_$$
    psql --quiet "$TOLLHOUSE_TEST_POSTGRES" --command "CREATE DATABASE $database"
    start_sandbox --examples --postgres "${TOLLHOUSE_TEST_POSTGRES%/*}/$database"
    node --test --test-concurrency=1 --test-reporter=spec console.test.js portal.test.js || {
        cat "$log" >&2
        exit 1
    }
fi
