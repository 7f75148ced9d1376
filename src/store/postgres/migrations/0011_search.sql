-- Finds checks by a part of their name or slug. The extension pg_trgm is there: migrate.ts creates it.
create index checks_search on checks using gin (name gin_trgm_ops, slug gin_trgm_ops);
