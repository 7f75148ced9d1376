-- How clients of healthchecks' API name checks (docs/moving-in.md).

-- A client of that API gave an empty slug. Slugs are unique here, so that the check has one; that API shows the empty one.
alter table checks add column slug_left_empty boolean not null default false;

-- The name of a check for read-only keys: the SHA-1 of the first 16 hex digits of its public id, which are one block of that hash. PostgreSQL has
-- SHA-1 in an extension only. The cost keeps a plan from computing it for the checks of a project.
create function unique_key_of(public_id uuid) returns bytea language plpgsql immutable strict parallel safe cost 100000 as $$
declare
  message constant bytea := encode(substring(uuid_send(public_id) for 8), 'hex')::bytea;
  most constant bigint := 4294967295;
  w bigint[];
  a bigint := 1732584193;
  b bigint := 4023233417;
  c bigint := 2562383102;
  d bigint := 271733878;
  e bigint := 3285377520;
  f bigint;
  x bigint;
begin
  for i in 0..3 loop
    w[i] := (get_byte(message, 4 * i)::bigint << 24) | (get_byte(message, 4 * i + 1) << 16)
      | (get_byte(message, 4 * i + 2) << 8) | get_byte(message, 4 * i + 3);
  end loop;
  -- The end of the message, and its length in bits.
  w[4] := 2147483648;
  for i in 5..14 loop w[i] := 0; end loop;
  w[15] := 128;
  for i in 16..79 loop
    x := w[i - 3] # w[i - 8] # w[i - 14] # w[i - 16];
    w[i] := ((x << 1) | (x >> 31)) & most;
  end loop;
  for i in 0..79 loop
    f := case
      when i < 20 then ((b & c) | ((b # most) & d)) + 1518500249
      when i < 40 then (b # c # d) + 1859775393
      when i < 60 then ((b & c) | (b & d) | (c & d)) + 2400959708
      else (b # c # d) + 3395469782 end;
    x := (((a << 5) | (a >> 27)) & most) + f + e + w[i];
    e := d; d := c; c := ((b << 30) | (b >> 2)) & most; b := a; a := x & most;
  end loop;
  return int8send((((1732584193 + a) & most) << 32) | ((4023233417 + b) & most))
    || int8send((((2562383102 + c) & most) << 32) | ((271733878 + d) & most))
    || int4send((3285377520 + e)::bit(32)::int);
end $$;

create index checks_unique_key on checks (unique_key_of(public_id));
-- Statistics would compute it for a sample of all checks, again and again.
alter index checks_unique_key alter column 1 set statistics 0;
