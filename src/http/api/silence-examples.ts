/** The examples of silences (examples.ts). */

const SILENCE = {
  id: '0190b8a0-7c3e-7a41-8d52-9f6e1b0c4d2a',
  project_id: '0d9af4bb-0c3f-4f0e-9e0a-3b8f3a1c2d10',
  check_id: null,
  tag: 'db',
  starts_at: null,
  ends_at: null,
  schedule: '0 2 * * 0',
  time_zone: 'Europe/Berlin',
  duration_seconds: 7_200,
  comment: 'The databases are updated each Sunday.',
  by: { kind: 'user', id: '01a1ffd0-1111-7222-8333-944445555666', name: 'ada@example.com' },
  managed_by: 'api',
  created_at: '2026-11-20T14:00:00.000Z',
  active: false,
  active_until: null,
  next_starts_at: '2026-11-22T01:00:00.000Z',
}

export const SILENCES = {
  listSilences: { response: { silences: [SILENCE], next_cursor: null } },
  createSilence: {
    body: {
      project_id: SILENCE.project_id,
      tag: 'db',
      schedule: '0 2 * * 0',
      time_zone: 'Europe/Berlin',
      duration_seconds: 7_200,
      comment: SILENCE.comment,
    },
    response: SILENCE,
  },
  getSilence: { response: SILENCE },
}
