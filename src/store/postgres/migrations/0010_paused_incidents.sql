-- Checks that were down and then paused or resumed, before incidents were stored: the recipients of check.down still wait for check.up. Rows of
-- checks that are down or up need nothing (domain/flapping.ts).
update check_states s set incident_since = (
    select case f.to_status when 2 then f.at end from flips f
    where f.check_key = s.check_key and f.to_status in (1, 2) order by f.id desc limit 1)
  where s.status in (0, 3) and s.incident_since is null
    and exists (select from flips f where f.check_key = s.check_key and f.to_status = 2);
