-- Silences that HeartbeatSilences declare (design, section 5).

alter table silences
  add column kubernetes_cluster text,
  add column kubernetes_namespace text,
  add column kubernetes_name text,
  add column selector jsonb,
  add check (num_nonnulls(kubernetes_cluster, kubernetes_namespace, kubernetes_name, selector) in (0, 4));
create unique index silences_resource on silences (kubernetes_cluster, kubernetes_namespace, kubernetes_name)
  where kubernetes_name is not null;

comment on column silences.selector is
  '[{"key", "operator": In, NotIn, Exists or DoesNotExist, "values"}]: all hold for the labels of the HeartbeatChecks '
  'of the namespace that are covered, in each project; null: of the API';
