-- Tokens of Uptime Kuma's push monitors, whose URLs go on pinging the checks that the monitors became. Of the whole installation, as the URL names nothing
-- else. A token is the right to ping one check, as its public id is.
create table push_tokens (
  token text primary key check (token ~ '^[A-Za-z0-9_-]{1,64}$'),
  check_key bigint not null references checks (key) on delete cascade
);
create index push_tokens_check on push_tokens (check_key);
