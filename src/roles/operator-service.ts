/** The service as the operator asks it (operator/service.ts): from the database, in the process of the controller. */

import { declareChannel, findChannelDeliveries, leaveOtherProject, retireChannel } from '../channels/declare-channel.ts'
import { armCheck, disarmCheck } from '../checks/declare/arm-check.ts'
import { declareCheck } from '../checks/declare/declare-check.ts'
import { registerCluster } from '../checks/declare/register-cluster.ts'
import { retireCheck } from '../checks/declare/retire-check.ts'
import { abandonRuns } from '../checks/jobs/abandon-runs.ts'
import { findRecorded } from '../checks/jobs/find-recorded.ts'
import { markSeen } from '../checks/jobs/mark-seen.ts'
import { recordJobs } from '../checks/jobs/record-jobs.ts'
import { AppError } from '../domain/errors.ts'
import type { Service } from '../operator/service.ts'
import type { Clock } from '../runtime/clock.ts'
import { declareSilence, findSilenceOfResource, retireSilence } from '../silences/declare-silence.ts'
import { listenForNotices } from '../store/checks/change-notices.ts'
import { findDeclaredCheck, listDeclaredStates } from '../store/checks/declared-checks.ts'
import { findUrlHolder } from '../store/checks/retained-checks.ts'
import type { Context } from '../store/context.ts'
import { listUnreportedFlips, saveReportedFlip } from '../store/history/reported-flips.ts'
import { findFollowedFacts } from '../store/jobs/cron-jobs.ts'
import { listDueAreas, listFollowed, listFollowedDue, listOverdueRuns } from '../store/jobs/followed-checks.ts'
import { saveUnseen } from '../store/jobs/seen-areas.ts'
import { findInstallation } from '../store/leases/installation.ts'
import { listDeclaredSilences } from '../store/silences/declared-silences.ts'
import { findProjectsInstead, resolveProject } from '../tenancy/namespace-projects.ts'

export interface ServiceOptions {
  readonly context: Context
  /** Of the database, for the connection that listens. */
  readonly databaseUrl: string
  /** This process's clock. */
  readonly clock: Clock
}

export function serviceOf({ context, databaseUrl, clock }: ServiceOptions): Service {
  const { database } = context
  return {
    now: () => context.clock.now(),
    findInstallation: () => findInstallation(database),
    registerCluster: (claim) => registerCluster(context, claim),
    listenForFlips: ({ onFlip, ...listener }) =>
      listenForNotices({
        url: databaseUrl,
        name: 'flips',
        clock,
        onNotice({ resource }) {
          if (resource !== null) onFlip(resource)
        },
        ...listener,
      }),
    listStates: (cluster) => listDeclaredStates(database, cluster),
    findCheck: (resource) => findDeclaredCheck(database, resource),
    async declareCheck({ project, ...declaration }) {
      const { id } = await resolveProject(context, project)
      return declareCheck(context, { ...declaration, projectId: id })
    },
    armCheck: (cluster, check) => armCheck(context, { cluster }, check),
    disarmCheck: (cluster, check) => disarmCheck(context, { cluster }, check),
    retireCheck: (resource, policy, published) => retireCheck(context, resource, policy, published),
    findUrlHolder: (place, object, publicIds) => findUrlHolder(database, place, object, publicIds),
    findProjectsInstead: (request) => findProjectsInstead(context, request),
    async declareChannel({ project, ...declaration }) {
      const { id } = await resolveProject(context, project)
      return declareChannel(context, { ...declaration, projectId: id })
    },
    async leaveOtherProject({ resource, project }) {
      const id = await resolveProject(context, project).then(
        (found) => found.id,
        (error) => {
          if (error instanceof AppError && (error.code === 'forbidden' || error.code === 'not_found')) return null
          throw error
        },
      )
      await leaveOtherProject(context, resource, id)
    },
    retireChannel: (resource, other) => retireChannel(context, resource, other),
    findChannelDeliveries: (cluster, channelId) => findChannelDeliveries(context, cluster, channelId),
    async declareSilence({ project, ...declaration }) {
      const { id } = await resolveProject(context, project)
      return declareSilence(context, { ...declaration, projectId: id })
    },
    findSilence: (resource) => findSilenceOfResource(context, resource),
    retireSilence: (resource, other) => retireSilence(context, resource, other),
    listSilences: (cluster) => listDeclaredSilences(database, cluster),
    listUnreportedFlips: (key) => listUnreportedFlips(database, key),
    saveReportedFlip: (key, flipId) => saveReportedFlip(database, key, flipId),
    findFollowedFacts: (check) => findFollowedFacts(database, check),
    recordJobs: (reports, onFailed, wait) => recordJobs(context, reports, onFailed, wait),
    findRecorded: (runs) => findRecorded(context, runs),
    abandonRuns: (resource, runIds) => abandonRuns(context, resource, runIds),
    listFollowed: (cluster, after) => listFollowed(database, cluster, after),
    listFollowedDue: (areas, until, limit) => listFollowedDue(database, areas, until, limit),
    listDueAreas: (areas, until, aheadMs) => listDueAreas(database, areas, until, aheadMs),
    listOverdueRuns: (areas, until) => listOverdueRuns(database, areas, until),
    markSeen: (seen, details) => markSeen(context, seen, details),
    saveUnseen: (cluster, areas) => saveUnseen(database, cluster, areas),
  }
}
