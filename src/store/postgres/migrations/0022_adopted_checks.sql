-- Whether a retained check was adopted, for the resource that has it back (design, section 6). Null: unknown.
alter table retained_checks add column kubernetes_adopted boolean;

-- A check that was adopted before 0021_retained_checks.sql stays in its project too. The audit log says of which checks the controller changed the owner.
update checks c set kubernetes_adopted = true
where c.kubernetes_name is not null and c.kubernetes_adopted is null
  and exists (select from audit_log a where a.target_id = c.id and a.actor_kind = 'controller' and a.action = 'check.changed'
    and a.detail -> 'changed' ? 'managed_by');
update tombstones t set kubernetes_adopted = true
where t.kubernetes_adopted is null
  and exists (select from audit_log a where a.target_id = t.id and a.actor_kind = 'controller' and a.action = 'check.changed'
    and a.detail -> 'changed' ? 'managed_by');
