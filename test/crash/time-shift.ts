import { query } from '../support/embedded.ts'

const STATE_TIMES = [
  'since',
  'last_ping_at',
  'last_success_at',
  'last_start_at',
  'expected_at',
  'due_at',
  'stamped_at',
  'wake_at',
]

/**
 * As if so much time had passed at once: everything that is stored happened that much earlier. With `isStopped` the last
 * beat too, as if no replica had run in the meantime; without it, the service was well all the time.
 */
export async function letTimePass(url: string, ms: number, isStopped: boolean): Promise<void> {
  const by = `${ms} * interval '1 millisecond'`
  const earlier = (column: string) => `${column} = ${column} - ${by}`
  await query(
    url,
    `begin;
    ${isStopped ? `update service_beat set ${earlier('beat_at')};` : ''}
    update gaps set ${earlier('started_at')}, ${earlier('ended_at')};
    update check_states set ${STATE_TIMES.map(earlier).join(', ')},
      runs = (select jsonb_agg(jsonb_build_object('id', run -> 'id', 'startedAt', (run ->> 'startedAt')::numeric - ${ms}, 'deadlineAt', (run ->> 'deadlineAt')::numeric - ${ms}))
        from jsonb_array_elements(runs) run);
    commit`,
  )
}
