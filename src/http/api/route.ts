/**
 * How an operation of the management API is declared. Everything that the outside can know about it is data, so that routing,
 * validation and /openapi.json come from the one declaration and cannot disagree.
 */

import type { z } from 'zod'
import type { Tokens } from '../../auth/tokens.ts'
import type { ChannelContext } from '../../channels/context.ts'
import type { Caller, Scope } from '../../domain/access.ts'
import type { ErrorCode } from '../../domain/errors.ts'

/** What handlers work with. */
export interface Api {
  readonly context: ChannelContext
  readonly tokens: Tokens
  /** The OpenAPI document. */
  describe(): object
}

/** A request that was admitted and found valid. `Who` is null where no credential is asked for. */
export interface Call<Who extends Caller | null, Params, Query, Body> extends Api {
  readonly caller: Who
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** The client's address as our socket knows it; what X-Forwarded-For says is anybody's claim. */
  readonly address: string
}

type Schema = z.ZodType

export interface Endpoint<
  Who extends Caller | null = Caller | null,
  Params extends Schema = Schema,
  Query extends z.ZodObject = z.ZodObject,
  Body extends Schema = Schema,
  Answer extends Schema | null = Schema | null,
> {
  /** operationId in the document. */
  readonly id: string
  readonly summary: string
  /** A fault in it is `not_found`, with its message: a malformed id is as unknown as any other. */
  readonly params?: Params
  /** Unknown parameters are ignored, since clients and proxies add their own; a known one may be given once. */
  readonly query?: Query
  /** Without it, whatever is sent is ignored. */
  readonly body?: Body
  readonly status: 200 | 201 | 202 | 204
  /** What leaves: fields that it does not declare are dropped. Null with 204. */
  readonly answer: Answer
  /** Refusals beyond those that follow from the rest of the declaration. */
  readonly refuses?: readonly ErrorCode[]
  // A method, so that endpoints of different inputs fit one list.
  handle(
    call: Call<Who, z.output<Params>, z.output<Query>, z.output<Body>>,
  ): Promise<Answer extends Schema ? z.input<Answer> : void>
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface Route {
  readonly method: Method
  /** Below {base_url}, as in OpenAPI: `/checks/{id}`. */
  readonly path: `/${string}`
  /** Null: no credential is asked for, and nothing is counted. */
  readonly scope: Scope | null
  readonly endpoint: Endpoint
}

/** Declares an endpoint for callers with a credential. */
export function endpoint<P extends Schema, Q extends z.ZodObject, B extends Schema, A extends Schema | null>(
  declared: Endpoint<Caller, P, Q, B, A>,
): Endpoint<Caller, P, Q, B, A> {
  return declared
}

/** Declares an endpoint for everybody. */
export function openEndpoint<P extends Schema, Q extends z.ZodObject, B extends Schema, A extends Schema | null>(
  declared: Endpoint<null, P, Q, B, A>,
): Endpoint<null, P, Q, B, A> {
  return declared
}
