#!/bin/sh
# What the official image's does: makes the database on the first start, by POSTGRES_USER, POSTGRES_PASSWORD or
# POSTGRES_PASSWORD_FILE, POSTGRES_DB and PGDATA, then runs the server. There are no /docker-entrypoint-initdb.d and no
# POSTGRES_INITDB_ARGS here.
set -eu

case ${1:-postgres} in
  postgres) shift ;;
  -*) ;;
  *) exec "$@" ;;
esac

: "${POSTGRES_USER:=postgres}"
: "${POSTGRES_DB:=$POSTGRES_USER}"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE"); fi
  if [ -z "${POSTGRES_PASSWORD:-}" ]; then
    echo 'the database is uninitialized and there is no superuser password: set POSTGRES_PASSWORD_FILE' >&2
    exit 1
  fi
  mkdir -p "$PGDATA"
  chmod 700 "$PGDATA"
  given=$(mktemp)
  printf '%s\n' "$POSTGRES_PASSWORD" > "$given"
  initdb --username="$POSTGRES_USER" --pwfile="$given" --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 \
    --locale-provider=builtin --builtin-locale=C.UTF-8 --locale=C --no-instructions
  rm "$given"
  echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
  if [ "$POSTGRES_DB" != postgres ]; then
    echo "create database \"$POSTGRES_DB\"" | postgres --single -D "$PGDATA" postgres > /dev/null
  fi
  echo 'PostgreSQL init process complete; ready for start up.'
fi
unset POSTGRES_PASSWORD
exec postgres -c listen_addresses='*' -c unix_socket_directories=/var/run/postgresql "$@"
