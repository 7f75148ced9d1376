/** manifests/demo on a node: the picture that the README shows of it, and the reason of each broken CronJob. */

import { readText } from '../support/documents.ts'

/** Of each that is broken, the first line. */
export const REASONS: Readonly<Record<string, RegExp>> = {
  fails: /container job failed \(exit code 3\)/,
  hangs: /Job hangs-\d+ has run for longer than \d+ s \(/,
  'no-image': /container job could not start: (ErrImagePull|ImagePullBackOff): /,
  'out-of-memory': /container job was OOMKilled \(exit code 137\)/,
}

/** Columns of `kubectl get hbc` that say the same at each time. */
const STEADY = ['NAME', 'STATE', 'READY', 'SCHEDULE', 'LAST RUN', 'WHY'] as const

/** What `kubectl get hbc` printed, by the columns that are the same at each time; lines behind the table are left out. */
export function toPicture(printed: string): readonly (readonly string[])[] {
  const [head = '', ...lines] = printed.split('\n')
  const columns = [...head.matchAll(/\S+(?: \S+)*/g)].map(({ 0: name, index }) => ({ name, from: index }))
  const end = lines.findIndex((line) => !/^[a-z][a-z-]+ +(new|up|late|down|paused) /.test(line))
  return lines.slice(0, end < 0 ? lines.length : end).map((line) =>
    STEADY.map((wanted) => {
      const index = columns.findIndex(({ name }) => name === wanted)
      return line.slice(columns[index]?.from, columns[index + 1]?.from).trim()
    }),
  )
}

/** The picture in the README. */
export function readPicture(): readonly (readonly string[])[] {
  const [, picture = ''] = /^```\n(NAME .*?)^```$/ms.exec(readText('README.md')) ?? []
  return toPicture(picture)
}

/**
 * What is seen depends on the second: of the runs that end at once, the next one may just have begun; and between the time of a slot and the
 * start of its run, a check that is up is late.
 */
export function settle(rows: readonly (readonly string[])[]): readonly (readonly string[])[] {
  const [run, state] = [STEADY.indexOf('LAST RUN'), STEADY.indexOf('STATE')]
  const picture = readPicture()
  return rows.map((row, index) => {
    const [ended = '', before] = [picture[index]?.[run], picture[index]?.[state]]
    const settled = row[run] === 'Running' && /^(Succeeded|Failed)$/.test(ended) ? row.with(run, ended) : row
    return settled[state] === 'late' && before === 'up' ? settled.with(state, 'up') : settled
  })
}
