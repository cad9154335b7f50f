#!/usr/bin/env bash
# Starts the simulators and hosts to measure, each as a process of its own, so that the CPU time of
# a host is its own. Sets up the accounts that the load generator needs, writes FOLDER/sandbox.json,
# prints the flags of the load generator, and serves until it is interrupted.
#
#   benches/load/hosts.sh FOLDER [POSTGRES-URL [HOSTS]]
#
# Without a URL, one host on SQLite. The database must be empty. BIN names the folder of the
# programs, PLUGINS that of the components, and PORT the first of 2 * HOSTS + 1 ports. Settings
# (TOLLHOUSE_…) pass to the hosts. Needs curl and jq.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=${1:?usage: benches/load/hosts.sh FOLDER [POSTGRES-URL [HOSTS]]}
postgres=${2:-}
hosts=${3:-1}
bin=${BIN:-$root/target/release}
plugins=${PLUGINS:-$root/target/plugins/wasm32-wasip2/plugin}
port=${PORT:-19080}
[ "$hosts" = 1 ] || [ -n "$postgres" ] || { echo "several hosts need PostgreSQL" >&2; exit 2; }
[ ! -e "$dir" ] || { echo "$dir exists already" >&2; exit 2; }

mkdir -p "$dir"
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT
until_true() {
    for _ in $(seq 600); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done
    echo "not in time: $*" >&2
    exit 1
}

"$bin/sandbox" --simulators-only --port "$((port + 2 * hosts))" --dir "$dir/simulators" >"$dir/simulators.log" 2>&1 &
until_true test -e "$dir/simulators/sandbox.json"
simulators=$(jq -r .sandbox "$dir/simulators/sandbox.json")
smtp=$(jq -r .smtp "$dir/simulators/sandbox.json")

"$bin/tollhouse" config init "$dir/host" >/dev/null
export TOLLHOUSE_CONFIG=$dir/host/tollhouse.toml
export TOLLHOUSE_PUBLIC_URL=http://127.0.0.1:$port TOLLHOUSE_INTERNAL_URL=http://127.0.0.1:$((port + 1))
[ -z "$postgres" ] || export TOLLHOUSE_DATABASE=$postgres
# What production limits, or has no place on one machine.
export TOLLHOUSE_RATE_PER_S=${TOLLHOUSE_RATE_PER_S:-0}
export TOLLHOUSE_OTP_COMPANY_SENDS_PER_HOUR=${TOLLHOUSE_OTP_COMPANY_SENDS_PER_HOUR:-0}
export TOLLHOUSE_MAX_CONNECTIONS_PER_ADDRESS=${TOLLHOUSE_MAX_CONNECTIONS_PER_ADDRESS:-0}
"$bin/tollhouse" migrate
flags=()
for n in $(seq 0 $((hosts - 1))); do
    api=127.0.0.1:$((port + 2 * n)) internal=127.0.0.1:$((port + 2 * n + 1))
    "$bin/tollhouse" serve --development --plugin-unsigned --plugin-cache "$dir/plugins" \
        --listen "$api" --internal-listen "$internal" --smtp-host "${smtp%:*}" \
        --smtp-port "${smtp#*:}" --smtp-security none --email-from no-reply@tollhouse.example \
        >"$dir/host-$n.log" 2>&1 &
    until_true curl -sf "http://$api/health/ready"
    [ "$n" = 0 ] || flags+=(--api "http://$api" --internal "http://$internal")
done

account() {
    "$bin/tollhouse" plugin install --grant "$plugins/$1.wasm" >/dev/null
    "$bin/tollhouse" provider set "$1" --credentials-file - --json <<<"$2"
}
account nigeria "{\"prembly_key\":\"load\",\"prembly_url\":\"$simulators/prembly\"}" >/dev/null
key=sk_test_load
url=$(account provider_a "{\"secret_key\":\"$key\",\"base_url\":\"$simulators/paystack\"}" | jq -r .notification_url)
curl -sf -X PUT "$simulators/paystack/webhook" -d "{\"secret_key\":\"$key\",\"url\":\"$url\"}"

jq -n --arg api "http://127.0.0.1:$port" --arg internal "$TOLLHOUSE_INTERNAL_URL" \
    --arg sandbox "$simulators" --rawfile token "$dir/host/operator-token" \
    '{$api, $internal, $sandbox, operator_token: ($token | rtrimstr("\n"))}' >"$dir/sandbox.json"
echo "--sandbox $dir ${flags[*]}"
wait
