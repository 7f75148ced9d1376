/** A spool on a file system in memory, with small files. */

import { openSpool } from '../../../src/spool/open-spool.ts'
import type { Problem } from '../../../src/spool/recover.ts'
import type { Spool, SpoolOptions } from '../../../src/spool/spool.ts'
import { FakeFiles } from '../../support/fake-files.ts'

export const FOLDER = '/spool'
export const EVERYTHING = { records: 1_000_000, bytes: 2 ** 30 }
export const HEADER = 40
export const RECORD_HEADER = 12

export const text = (...texts: string[]) => texts.map((text) => Buffer.from(text))
/** Where a spool keeps a damaged file. */
export const aside = (first: number, { id }: Pick<Spool, 'id'>) => `${segment(first)}.${id}.damaged`
export const segment = (first: number) => `${FOLDER}/${String(first).padStart(16, '0')}.segment`

/** A copy with one bit changed; `at` counts from the end if it is negative. */
export function flipped(bytes: Buffer, at: number, bit = 0): Buffer {
  const copy = Buffer.from(bytes)
  copy[(at + copy.length) % copy.length]! ^= 1 << bit
  return copy
}

export function createStage(options: Partial<SpoolOptions> = {}) {
  const files = new FakeFiles()
  const problems: Problem[] = []
  const open = () =>
    openSpool({
      folder: FOLDER,
      files,
      maxBytes: 100_000,
      segmentBytes: 1_000,
      onProblem: (problem) => problems.push(problem),
      ...options,
    })
  return { files, problems, open, kinds: () => problems.map(({ kind }) => kind) }
}

export async function readAll(spool: Spool, after = 0): Promise<string[]> {
  const found = await spool.read(after, EVERYTHING)
  return found.map(({ position, record }) => `${position} ${record}`)
}
