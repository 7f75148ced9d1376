-- How clients of healthchecks' API name checks (docs/moving-in.md).

-- A client of that API gave an empty slug. Slugs are unique here, so that the check has one; that API shows the empty one.
alter table checks add column slug_left_empty boolean not null default false;
