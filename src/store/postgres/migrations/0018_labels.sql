-- Labels of a check, by the rules of Kubernetes. Replicas of the release before leave them out: no labels.
alter table checks
  add column labels jsonb not null default '{}',
  -- Expressions over paths: a constraint may have no subqueries.
  add constraint checks_labels check (labels = '{}' or jsonb_typeof(labels) = 'object'
    and jsonb_array_length(jsonb_path_query_array(labels, '$.keyvalue()')) <= 32
    and not jsonb_path_exists(labels, '$.keyvalue() ? (
      !(@.key like_regex "^((?=[^/]{1,253}/)[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$")
      || @.value.type() != "string" || !(@.value like_regex "^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$"))'));

-- The labels of the check when its alert began, which the alert keeps. Replicas of the release before leave them out: none.
alter table alerts add column check_labels jsonb not null default '{}';
