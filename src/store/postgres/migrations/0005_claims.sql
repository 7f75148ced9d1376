-- A claim has a column of its own, in no index, so that taking a delivery changes none: with next_attempt_at, which it moved before,
-- each of eight got another entry.
alter table deliveries add column claimed_until timestamptz;
alter table deliveries set (fillfactor = 75);

-- Of those that are no longer pending only the failed ones are looked for by that. Pending ones are few, or soon delivered.
drop index deliveries_undelivered;
create index deliveries_failed on deliveries (organization_id, id) where status = 2;
