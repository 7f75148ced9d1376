-- 22 random characters A-Z, a-z, 0-9: 131 bits. Bytes of random UUIDs, without the two that hold their version and variant; a byte of 248 or more
-- is left out, so that each character is as likely as the others. Of the 56 bytes about 54 remain; fewer than 22 would violate the constraints below.
create function make_project_key() returns text language sql volatile as $$
  select string_agg(substr('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789', byte % 62 + 1, 1), '')
  from (
    select get_byte(uuid_send(u.uuid), place) as byte
    from (select gen_random_uuid() as uuid from generate_series(1, 4)) u, generate_series(0, 15) place
    where place not in (6, 8) and get_byte(uuid_send(u.uuid), place) < 248
    limit 22
  ) bytes
$$;

-- Keys of a project: that of the addresses of its pings by name, and that of its badges. Replicas of the release before make projects, too: these have a badge key.
alter table projects
  add column ping_key text unique check (ping_key ~ '^[A-Za-z0-9]{22}$'),
  add column badge_key text unique default make_project_key() check (badge_key ~ '^[A-Za-z0-9]{22}$');
