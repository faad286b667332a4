#!/bin/sh
# Sends one Standard Webhooks delivery: HOOK_URL and HOOK_SECRET say where to and by what it is signed.
set -eu
night=${1:-$(date -u +%Y-%m-%d)} id="nightly_$night" timestamp=$(date +%s)
body=$(printf '{"type":"training.due","data":{"night":"%s","seed":%s}}' "$night" "$(echo "$night" | tr -d -)")
key=$(printf %s "${HOOK_SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n')
signature=$(printf %s "$id.$timestamp.$body" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)
curl --fail-with-body -sS "$HOOK_URL" -H 'content-type: application/json' -H "webhook-id: $id" \
  -H "webhook-timestamp: $timestamp" -H "webhook-signature: v1,$signature" -d "$body"
