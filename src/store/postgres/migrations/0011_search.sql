-- Finds checks by a part of their name or slug. Optional: the extension may be missing, or this user may not create it. Then a search reads
-- the checks of the project, up to a limit. To add the index later: run these two statements as a user who may.
do $$
begin
  create extension if not exists pg_trgm;
  create index checks_search on checks using gin (name gin_trgm_ops, slug gin_trgm_ops);
exception
  when lock_not_available then raise;
  when others then
    raise notice 'checks are searched without an index: %', sqlerrm;
end $$;
