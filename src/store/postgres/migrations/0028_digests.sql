-- Which digest a delivery was a part of. Replicas of the release before send each delivery in a message of its own and leave it out.
alter table deliveries add column digest_id uuid;
-- When the next digest of the channel may be sent; null, and in the past: at once. Replicas of the release before leave it alone.
alter table channels add column next_digest_at timestamptz;
