#!/bin/sh
set -eu
password="$(pass show shop/database)"
token=$(cat /run/secrets/token)
mysql --user=shop --password="$password" shop < schema.sql
export TOKEN="${TOKEN:?set it first}" token
