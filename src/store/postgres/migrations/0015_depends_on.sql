-- Which checks a check depends on (design, section 3.1). A check that is removed leaves the lists of others.

alter table checks add column depends_on uuid[]
  check (cardinality(depends_on) between 1 and 20 and array_position(depends_on, null) is null);
create index checks_depends_on on checks using gin (depends_on) where depends_on is not null;

comment on column checks.depends_on is 'ids of checks of the organization; null: it depends on none';
