import { type BeatOptions, keepBeat } from '../../src/checks/deadlines/beat.ts'

/** What a beat needs besides its database: of a process without a spool. */
export const WITHOUT_SPOOL = {
  self: () => ({ id: '0b7e0000-0000-4000-8000-000000000001', spool: null }),
  onSettled: () => {},
}

/** One beat of a process without a spool whose pings are well. */
export const beat = (
  { database }: Pick<BeatOptions, 'database'>,
  given: Partial<Pick<BeatOptions, 'recorder' | 'onGap'>> = {},
) =>
  keepBeat({
    ...WITHOUT_SPOOL,
    database,
    recorder: { isWell: () => true, recovered: () => {} },
    onGap: () => {},
    ...given,
  })
