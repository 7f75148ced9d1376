-- Deliveries that are not sent, and why (docs/use/channels.md, "Not sent").

alter table deliveries
  add column reason text,
  add column cause jsonb,
  add constraint deliveries_reason check ((status = 3) = (reason is not null));
create index deliveries_suppressed on deliveries (organization_id, id) where status = 3;

comment on column deliveries.status is '0 pending, 1 delivered, 2 failed, 3 suppressed';
comment on column deliveries.reason is 'why it is suppressed';
comment on column deliveries.cause is '{"kind", "id"} of what suppresses it; null where there is none';
