#!/bin/sh
# Makes the role that the program connects as, when the database's own container prepares itself for the first time.
set -eu
psql --no-psqlrc --set ON_ERROR_STOP=1 --set password="$APP_PASSWORD" --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
CREATE ROLE intramuros_app LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOINHERIT PASSWORD :'password';
SQL
