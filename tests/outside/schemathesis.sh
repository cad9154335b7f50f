#!/usr/bin/env bash
# Sends a running sandbox requests that its OpenAPI documents allow, and others that they do not. No
# response may be 5xx or undocumented. The sandbox is unusable afterwards. run.sh starts the sandbox
# and sets SANDBOX_JSON and PYTHON.
set -euo pipefail
cd "$(dirname "$0")"
bin=$(dirname "$PYTHON")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

setting() { jq -er ".$1" "$SANDBOX_JSON"; }
api=$(setting api) internal=$(setting internal) company=$(setting company_id)

# Sends a request with the key $1; the other arguments are curl's.
send() { curl --silent --show-error --fail --header "Authorization: Bearer $1" "${@:2}"; }

# Checks the listener $1 with the key $2: its document is valid OpenAPI and matches its responses,
# for random path values, most of which name nothing, and more thoroughly for those on stdin.
check() {
    curl --silent --fail --output "$dir/openapi.json" "$1/openapi.json"
    "$bin/openapi-spec-validator" --schema 3.1 "$dir/openapi.json"
    cat schemathesis.toml - >"$dir/known.toml"
    run schemathesis.toml "$2" "$1" --phases examples,coverage
    run "$dir/known.toml" "$2" "$1"
}
run() {
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=. KEY=$2 "$bin/schemathesis" --no-color --config-file "$1" \
        run "$3/openapi.json" "${@:4}"
}

# A successful payment and its event.
payment=$(send "$(setting api_key)" "$api/api/v1/payment/initialize" --json '{"email": "ada@example.com", "amount": 2500.5,
    "currency": "NGN", "reference": "schemathesis", "checkout": {"success_url": "https://lender.example/"}}')
url=$(jq -er .data.checkout.url <<<"$payment")
curl --silent --fail --output /dev/null "$url/complete" --json '{"outcome": "success"}'
for _ in $(seq 100); do
    events=$(send "$(setting operator_token)" "$internal/internal/v1/companies/$company/events")
    event=$(jq -r '.data.docs[] | select(.body.data.reference == "schemathesis").id' <<<"$events")
    [ -n "$event" ] && break
    sleep 0.2
done
payment=$(jq -er .data.id <<<"$payment")
# Another key, to be rotated and revoked.
key=$(send "$(setting operator_token)" "$internal/internal/v1/companies/$company/keys" --json '{"label": "spare"}' | jq -er .data.id)
account=$(send "$(setting operator_token)" "$internal/internal/v1/providers" | jq -er '.data[] | select(.provider == "provider_a").notification_url | split("/")[-1]')

check "$api" "$(setting api_key)" <<EOF_VALUES
[parameters]
"path.email_or_id" = "ada@example.com"
"path.id" = "$payment"
"path.reference" = "schemathesis"
"path.provider" = "provider_a"
"path.account" = "$account"
EOF_VALUES

check "$internal" "$(setting operator_token)" <<EOF_VALUES
[parameters]
"path.company" = "$company"
"path.payment" = "$payment"
"path.account" = "$account"
"path.day" = "$(date -u +%F)"
"path.event" = "$event"
"path.key" = "$key"
"path.reference" = "schemathesis"
"path.provider" = "provider_a"
EOF_VALUES
