/**
 * All that the controller asks of the service. `serviceOf()` (roles/operator-service.ts) answers from the database, in this process. The
 * table of these calls is what an API for a controller of another cluster would have.
 *
 * Each call rejects when the database does not serve, and may be made again: none of them does a thing twice.
 */

import type { Declared, GivenDeclaration } from '../checks/declare/declare-check.ts'
import type { Registration } from '../checks/declare/register-cluster.ts'
import type { PublishedObjectName } from '../checks/declare/retire-check.ts'
import type {
  CheckRecord,
  DeclaredState,
  FollowedFacts,
  Resource,
  StoredCheck,
  UrlHolder,
} from '../checks/find-checks.ts'
import type { FlipRecord } from '../checks/find-history.ts'
import type { Instant } from '../domain/check.ts'
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
   * Brings the check of a resource in line with its declaration, in the project that it asks for. Rejects with an AppError for what a
   * person has to correct: as resolveProject() and declareCheck() say.
   */
  declareCheck(declaration: ProjectDeclaration): Promise<Declared>
  /** Its ping URL is published: the first completion of the check is expected from now on. */
  armCheck(cluster: string, check: StoredCheck): Promise<StoredCheck>
  /** Its ping URL never was published: nothing is expected. */
  disarmCheck(cluster: string, check: StoredCheck): Promise<StoredCheck>
  /** `Retain`: `published` keeps the URL of the check for the resource; null: nothing does. Without a check: nothing. */
  retireCheck(resource: Resource, policy: 'Delete' | 'Retain', published?: PublishedObjectName | null): Promise<unknown>
  /** The check whose URL the object of a namespace keeps, or that has one of these public ids; null: none. */
  findUrlHolder(
    place: Pick<Resource, 'cluster' | 'namespace'>,
    object: PublishedObjectName,
    publicIds: readonly string[],
  ): Promise<UrlHolder | null>
  /** The slugs of the projects that a namespace may use, where `wanted` is none of them; else null. */
  findProjectsInstead(request: ProjectRequest & { readonly wanted: string }): Promise<readonly string[] | null>

  /** The flips of a check that are not reported yet, oldest first. `key`: of the check. */
  listUnreportedFlips(key: number): Promise<readonly FlipRecord[]>
  saveReportedFlip(key: number, flipId: string): Promise<void>
  /** Of a check that follows a source. */
  findFollowedFacts(check: Pick<CheckRecord, 'key' | 'state'>): Promise<FollowedFacts>
}

export interface ProjectDeclaration extends Omit<GivenDeclaration, 'projectId'> {
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
