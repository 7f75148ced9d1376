/**
 * All that the controller asks of the service. `serviceOf()` (roles/operator-service.ts) answers from the database, in
 * this process. The table of these calls is what an API for a controller of another cluster would have.
 *
 * Each call rejects when the database does not serve, and may be made again: none of them does a thing twice.
 */

import type { ChannelChange, ChannelDeclaration, ChannelDeliveries } from '../channels/declare-channel.ts'
import type { Declared, GivenDeclaration } from '../checks/declare/declare-check.ts'
import type { Registration } from '../checks/declare/register-cluster.ts'
import type { PublishedObjectName } from '../checks/declare/retire-check.ts'
import type {
  CheckRecord,
  DeadlineDetail,
  DeclaredState,
  FollowedCheck,
  FollowedFacts,
  OverdueRun,
  Resource,
  Seen,
  StoredCheck,
  UrlHolder,
} from '../checks/find-checks.ts'
import type { FlipRecord } from '../checks/find-history.ts'
import type { KnownRun } from '../checks/jobs/find-recorded.ts'
import type { JobEntry, JobOutcome, JobReport } from '../checks/jobs/job-report.ts'
import type { OnFailed, Wait } from '../checks/jobs/record-jobs.ts'
import type { Instant } from '../domain/check.ts'
import type {
  DeclaredSilence,
  DeclaredSilencePlace,
  SilenceChange,
  SilenceDeclaration,
} from '../silences/declare-silence.ts'
import type { ProjectRequest } from '../tenancy/namespace-projects.ts'

export interface Service {
  /** The clock of the database, whose times the other calls return. In milliseconds, as those. */
  now(): Instant
  /** The id of the installation, as the status of resources has it. */
  findInstallation(): Promise<string>
  /** A name whose holder did not renew it for `holderSeconds` passes to the caller. */
  registerCluster(claim: { cluster: string; uid: string; holderSeconds: number }): Promise<Registration>
  /** Calls `onFlip` with the resource of each check that flips, in any cluster, once start() was called. */
  listenForFlips(listener: FlipListener): FlipNotices

  /** Of all checks that HeartbeatChecks of the cluster declare, in no order. */
  listStates(cluster: string): Promise<readonly DeclaredState[]>
  /** Null when the resource has no check. */
  findCheck(resource: Resource): Promise<StoredCheck | null>
  /**
   * Brings the check of a resource in line with its declaration, in the project that it asks for. Rejects with an
   * AppError for what a person has to correct: as resolveProject() and declareCheck() say.
   */
  declareCheck(declaration: ProjectDeclaration): Promise<Declared>
  /** Its ping URL is published: the first completion of the check is expected from now on. */
  armCheck(cluster: string, check: StoredCheck): Promise<StoredCheck>
  /** Its ping URL never was published: nothing is expected. */
  disarmCheck(cluster: string, check: StoredCheck): Promise<StoredCheck>
  /**
   * `Retain`: `published` keeps the URL of the check for the resource; null: nothing does. Without a check: nothing.
   */
  retireCheck(resource: Resource, policy: 'Delete' | 'Retain', published?: PublishedObjectName | null): Promise<unknown>
  /** The check whose URL the object of a namespace keeps, or that has one of these public ids; null: none. */
  findUrlHolder(
    place: Pick<Resource, 'cluster' | 'namespace'>,
    object: PublishedObjectName,
    publicIds: readonly string[],
  ): Promise<UrlHolder | null>
  /** The slugs of the projects that a namespace may use, where `wanted` is none of them; else null. */
  findProjectsInstead(request: ProjectRequest & { readonly wanted: string }): Promise<readonly string[] | null>

  /**
   * Brings the channel of a HeartbeatChannel in line. Rejects with an AppError for what a person has to correct, as
   * resolveProject() and declareChannel() say.
   */
  declareChannel(declaration: ProjectChannel): Promise<{ readonly channelId: string; readonly change: ChannelChange }>
  /**
   * Removes the channel of a HeartbeatChannel from a project that its namespace has left. Without a channel: nothing.
   */
  leaveOtherProject(declared: Pick<ProjectChannel, 'resource' | 'project'>): Promise<void>
  /** Without a channel, and for the channel `other`: nothing. */
  retireChannel(resource: Resource, other?: string): Promise<void>
  /** Of all channels that HeartbeatChannels of the cluster declare, in no order, or of one of them. */
  findChannelDeliveries(cluster: string, channelId?: string): Promise<readonly ChannelDeliveries[]>

  /**
   * Brings the silence of a HeartbeatSilence in line. Rejects with an AppError for what a person has to correct, as
   * resolveProject() and declareSilence() say.
   */
  declareSilence(
    declaration: ProjectSilence,
  ): Promise<{ readonly silence: DeclaredSilence; readonly change: SilenceChange }>
  /** Null when the resource has no silence. */
  findSilence(resource: Resource): Promise<DeclaredSilence | null>
  /** Without a silence, and for the silence `other`: nothing. */
  retireSilence(resource: Resource, other?: string): Promise<void>
  /** Of all silences that HeartbeatSilences of the cluster declare, in no order. */
  listSilences(cluster: string): Promise<readonly DeclaredSilencePlace[]>

  /** The flips of a check that are not reported yet, oldest first. `key`: of the check. */
  listUnreportedFlips(key: number): Promise<readonly FlipRecord[]>
  saveReportedFlip(key: number, flipId: string): Promise<void>
  /** Of a check that follows a source. */
  findFollowedFacts(check: Pick<CheckRecord, 'key' | 'state'>): Promise<FollowedFacts>

  /** Records up to 200 reports, and returns what became of each, in their order: as recordJobs() says. */
  recordJobs(reports: readonly JobReport[], onFailed: OnFailed, wait: Wait): Promise<readonly JobOutcome[]>
  /**
   * The types of the entries that are recorded of each run, in the order of the runs; null: its resource has no check.
   */
  findRecorded(runs: readonly KnownRun[]): Promise<readonly (ReadonlySet<JobEntry['type']> | null)[]>
  /** Closes open runs without a record; `held`: the row of the check is locked elsewhere. */
  abandonRuns(resource: Resource, runIds: readonly string[]): Promise<'closed' | 'held'>
  /** A page of the checks that follow a source of the cluster, by their keys, from the first key above `after` on. */
  listFollowed(cluster: string, after: number): Promise<readonly FollowedCheck[]>
  /** Up to `limit` checks of these areas that are due at or before `until`, the most urgent first. */
  listFollowedDue(areas: readonly string[], until: Instant, limit: number): Promise<readonly FollowedCheck[]>
  /**
   * Of these areas: those with a deadline up to `until`, or with one within `aheadMs` after that whose reason is due.
   */
  listDueAreas(areas: readonly string[], until: Instant, aheadMs: number): Promise<readonly string[]>
  /** The open runs of these areas whose deadline has passed at `until`, and is not explained. */
  listOverdueRuns(areas: readonly string[], until: Instant): Promise<readonly OverdueRun[]>
  /** Saves up to when all Jobs of areas are recorded, and why runs have not started or ended, in one transaction. */
  markSeen(seen: Seen, details: readonly DeadlineDetail[]): Promise<void>
  /** Saves which areas were never seen, of those that are needed. */
  saveUnseen(cluster: string, areas: readonly string[]): Promise<void>
}

export interface ProjectDeclaration extends Omit<GivenDeclaration, 'projectId'> {
  readonly project: ProjectRequest
}

export interface ProjectChannel extends Omit<ChannelDeclaration, 'projectId'> {
  readonly project: ProjectRequest
}

export interface ProjectSilence extends Omit<SilenceDeclaration, 'projectId'> {
  readonly project: ProjectRequest
}

export interface FlipListener {
  readonly onFlip: (resource: Resource) => void
  /** Notices arrive from now on: what flipped before is to be looked for. */
  readonly onConnected: () => void
  /** For the log: the connection is opened again. */
  readonly onProblem: (error: unknown) => void
}

export interface FlipNotices {
  start(): void
  /** No call is made after the promise resolves. */
  stop(): Promise<void>
}
