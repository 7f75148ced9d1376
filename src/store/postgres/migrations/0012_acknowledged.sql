-- A person has an incident in hand (design, section 4, "Acknowledgement").

alter table check_states add column acknowledged jsonb;

comment on column check_states.acknowledged is
  '{"by": {"kind", "id", "name"}, "at", "until", "comment"}; times: milliseconds since the epoch; until: or null';
