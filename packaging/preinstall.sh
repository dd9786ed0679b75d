#!/bin/sh
# The user comes first: files of the package belong to its group.
set -e
getent group hookonce >/dev/null || groupadd --system hookonce
getent passwd hookonce >/dev/null || useradd --system --gid hookonce --home-dir /var/lib/hookonce --no-create-home \
	--shell /usr/sbin/nologin --comment "hookonce, the webhook gateway" hookonce
