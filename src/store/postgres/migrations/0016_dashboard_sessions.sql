-- A session of the dashboard is found by the hash of its cookie's token; sessions of the kind token have refresh tokens instead.
alter table sessions add column token_hash bytea;
create unique index sessions_token on sessions (token_hash) where token_hash is not null;
