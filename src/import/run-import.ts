/** The command `import`: not a role, but a front end on the verbs of checks. It works beside a running service, or without one. */

import { listChoosableChannels } from '../checks/choose-channels.ts'
import { SYSTEM } from '../domain/access.ts'
import { toOneLine } from '../domain/plain-text.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Context } from '../store/context.ts'
import { listProjectsOfAll, type ProjectOfAll } from '../store/tenancy/projects.ts'
import { type ImportArguments, UsageError } from './arguments.ts'
import { createClient } from './healthchecks/client.ts'
import { readHealthchecks } from './healthchecks/read.ts'
import { type Destination, importItems } from './import-items.ts'
import { describeRows, progressLine } from './report.ts'
import type { SourceItem } from './source.ts'
import { readUptimeKuma } from './uptime-kuma/read.ts'

export interface RunImportOptions {
  readonly context: Context
  readonly clock: Pick<Clock, 'sleep'>
  readonly say: (line: string) => void
  /** Takes a line that says why it takes longer, whether there is a terminal or not. */
  readonly warn: (line: string) => void
  /** Where progress is drawn; null: there is no terminal. */
  readonly draw: ((text: string) => void) | null
  readonly signal: AbortSignal
}

/** The exit status: 0, 3 if something was refused, 1 if a signal came. Throws UsageError, and SourceError. */
export async function runImport(given: ImportArguments, options: RunImportOptions): Promise<0 | 1 | 3> {
  const { context, say, draw, signal } = options
  const { isDryRun } = given
  const into = await findDestination(context, given.project)
  const items = await readItems(given, into, options)
  let drawn = 0
  const onProgress = (done: number) => {
    drawn = done
    draw?.(progressLine(done, items.length))
  }
  const endLine = () => drawn > 0 && drawn < items.length && draw?.('\n')
  const rows = await importItems(context, into, items, { isDryRun, onProgress, signal }).finally(endLine)
  for (const line of describeRows(rows, { isDryRun })) say(line)
  if (rows.length < items.length) {
    say('interrupted: import again for the others')
    return 1
  }
  return rows.some(({ outcome }) => outcome === 'refused') ? 3 : 0
}

async function readItems(
  given: ImportArguments,
  into: Destination,
  { context, clock, signal, warn }: RunImportOptions,
): Promise<SourceItem[]> {
  if (given.source === 'uptime-kuma') return readUptimeKuma(given.file, context.clock.now())
  const here = await listChoosableChannels(context, into, into.projectId)
  return readHealthchecks(createClient({ ...given, clock, signal, onWait: warn }), here)
}

async function findDestination({ database }: Context, slugOrId: string): Promise<Destination> {
  const [project, another] = slugOrId.includes('\0') ? [] : await listProjectsOfAll(database, slugOrId)
  if (project === undefined) {
    const known = await listProjectsOfAll(database, null)
    throw new UsageError(`there is no project ${toOneLine(slugOrId)}; there are: ${known.map(nameOf).join(', ')}`)
  }
  if (another !== undefined)
    throw new UsageError(`several organizations have a project ${slugOrId}: give its id (GET /api/v1/projects)`)
  return { ...SYSTEM, organizationId: project.organizationId, projectId: project.id }
}

const nameOf = ({ slug }: ProjectOfAll) => slug
