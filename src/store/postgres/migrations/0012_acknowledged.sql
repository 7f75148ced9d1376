-- A person has an incident in hand (design, section 4, "Acknowledgement").

alter table check_states add column acknowledged jsonb;
alter table audit_log
  drop constraint audit_log_actor_kind_check,
  add constraint audit_log_actor_kind_check
    check (actor_kind in ('user', 'api_key', 'controller', 'link', 'system'));

comment on column check_states.acknowledged is
  '{"by": {"kind", "id", "name"}, "at", "until", "comment"}; times: milliseconds since the epoch; until: or null';
