-- Tags of a check, in the order that people gave them. Replicas of the release before leave them out: no tags.
alter table checks
  add column tags text[] not null default '{}',
  -- No tag has a comma: joined, they can be judged by expressions, which unlike subqueries a constraint may have.
  add constraint checks_tags check (cardinality(tags) = 0 or cardinality(tags) <= 20 and array_position(tags, null) is null
    and array_to_string(tags, ',') ~ '^[A-Za-z0-9_.:/-]{1,50}(,[A-Za-z0-9_.:/-]{1,50})*$'
    and array_to_string(tags, ',') !~ '(^|,)([^,]+),(.*,)?\2(,|$)');
