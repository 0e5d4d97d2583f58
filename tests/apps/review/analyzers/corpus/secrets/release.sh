#!/bin/sh
set -eu
curl --user deploy -H "Authorization: token $DEPLOY_TOKEN" https://releases.example/upload
mysql --user=shop --password=gT5-window-River_39 shop < schema.sql
