-- Since when the receiver has refused each attempt with a response that it may also give while it restarts (delivery/http-outcome.ts).
alter table deliveries add column refused_at timestamptz;
