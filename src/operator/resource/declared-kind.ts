/** A kind of resources that only declare something of the service: a channel, or a silence. */

import type { Instant } from '../../domain/check.ts'
import type { AppError } from '../../domain/errors.ts'
import type { ProjectRequest } from '../../tenancy/namespace-projects.ts'
import type { Statement } from './conditions.ts'
import type { Resource, ResourceKind } from './resource.ts'
import type { StalledResource } from './stalled.ts'

/** The resource, as the service knows it. */
export interface Place {
  readonly cluster: string
  readonly namespace: string
  readonly name: string
}

/** What the service has for a resource. */
export interface Declared<Facts> {
  /** Null: that is gone meanwhile, or there is nothing to have. */
  readonly facts: Facts | null
  /** The Event of what has just happened; null: nothing has. */
  readonly news: { readonly reason: string; readonly note: string } | null
}

/** What a kind adds to the status that all have. */
export interface Described {
  readonly fields: object
  readonly statements: readonly Statement[]
}

/** `Facts`: what the service has for a resource, or knows of that. */
export interface DeclaredKind<T extends Resource, Facts> extends ResourceKind {
  /** What it declares, in a word. */
  readonly what: string
  /** Of its controller, in metrics and logs. */
  readonly controller: string
  /** The message of a resource that is in line. */
  readonly synced: string
  /** The type of the condition that is a problem when it is False. Left out: none. */
  readonly problem?: string
  /** The id of what was declared, as the status shows it. */
  idOf(status: NonNullable<T['status']>): string | undefined
  /**
   * Brings the service in line. Throws StalledResource, or an AppError that `toStalled` makes one of, for what a person
   * has to correct.
   */
  declare(object: T, place: Place, project: ProjectRequest): Promise<Declared<Facts>>
  /** Null: an attempt again may correct it. A project that is not there, or not allowed, is the same for each kind. */
  toStalled(error: AppError, object: T): StalledResource<string> | null
  /** Called with each resource that is stalled. Left out: nothing is to be done. */
  onStalled?(place: Place, project: ProjectRequest): Promise<void>
  /** Null: the service has nothing for the resource. */
  find(object: T, place: Place): Promise<Facts | null>
  describe(object: T, facts: Facts | null, now: Instant): Described
  /** When the facts change by themselves; null: never, or that is not known. Left out: null. */
  changesAt?(facts: Facts): Instant | null
  /** All that the service has for resources of the cluster, in no order. */
  list(): Promise<readonly Listed<T>[]>
  /** Removes what the service has for the resource, unless its id is `other`. Nothing is there: nothing happens. */
  retire(place: Place, other?: string): Promise<unknown>
}

export interface Listed<T extends Resource> {
  readonly namespace: string
  readonly name: string
  /** Whether the status shows it as it is. */
  isShown(object: T): boolean
}
