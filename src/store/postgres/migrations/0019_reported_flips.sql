-- Up to which flip the operator has recorded the history of a declared check as Kubernetes Events (design, section 6). Without a row: none. A row of its own,
-- as the rows of checks and check_states are written and cached by others.
create table reported_flips (
  check_key bigint primary key references checks (key) on delete cascade,
  flip_id uuid not null
);

-- The version before has recorded what there is.
insert into reported_flips (check_key, flip_id)
select c.key, f.id from checks c
  cross join lateral (select id from flips where check_key = c.key order by id desc limit 1) f
where c.managed_by = 'kubernetes';
