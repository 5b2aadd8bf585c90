#!/bin/sh
# One backup of the store that LOLOHA_STORE names, checked, into a folder that keeps those of 14 days.
# backup.sh FOLDER
set -eu
umask 077
name=$1/loloha-$(date -u +%Y%m%dT%H%M%SZ)
case $LOLOHA_STORE in
sqlite:///*)
    file=${LOLOHA_STORE#sqlite:///}
    test -f "$file"
    # One state of the store, its -wal included, while reports come in; nothing deleted is left in it.
    sqlite3 -bail -cmd '.timeout 60000' "$file" "VACUUM INTO '$name.partial'"
    test "$(sqlite3 -readonly "$name.partial" 'PRAGMA integrity_check')" = ok
    sync "$name.partial"
    mv "$name.partial" "$name.db"
    ;;
postgresql:*)
    pg_dump --format=custom --file="$name.partial" "$LOLOHA_STORE"
    pg_restore --list "$name.partial" >/dev/null
    sync "$name.partial"
    mv "$name.partial" "$name.dump"
    ;;
*)
    echo "LOLOHA_STORE must be sqlite:///PATH or postgresql:...; set it as for loloha serve" >&2
    exit 2
    ;;
esac
find "$1" -name 'loloha-*' -mtime +14 -delete
