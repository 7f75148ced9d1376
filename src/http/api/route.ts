/** Operations of the management API as data: routing, validation and /openapi.json all follow from it and cannot disagree. */

import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Tokens } from '../../auth/tokens.ts'
import type { ChannelContext } from '../../channels/context.ts'
import type { Caller, Scope } from '../../domain/access.ts'
import type { AuditAction } from '../../domain/audit.ts'
import type { ErrorCode } from '../../domain/errors.ts'
import { compressOnce, type Encoding } from '../compress.ts'
import type { Shown } from './present.ts'

export interface Api {
  readonly context: ChannelContext
  readonly tokens: Tokens
  readonly isPasswordLoginOn: boolean
  /** The public address of the ping API, without a slash at its end. */
  readonly pingUrl: () => string
  describe(): SharedText
}

/** A valid request of an admitted caller. `Who` is null for operations without a credential. */
export interface Call<Who extends Caller | null, Params, Query, Body> extends Api {
  readonly caller: Who
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** The client's network address (http/client-address.ts). */
  readonly address: string
}

type Schema = z.ZodType

/** A text that is the same for all, and large: it is compressed once, and a client that has it already gets no second copy. */
export class SharedText {
  readonly bytes: Buffer
  readonly etag: string
  readonly encoded: (encoding: Encoding) => Promise<Buffer>

  constructor(bytes: Buffer) {
    this.bytes = bytes
    this.etag = `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
    this.encoded = compressOnce(bytes)
  }
}

/** The response of an operation that returns text/plain: null for no text, with 204. */
export const PlainText = z.custom<Buffer | null>()

export interface Endpoint<
  Who extends Caller | null = Caller | null,
  Params extends Schema = Schema,
  Query extends z.ZodObject = z.ZodObject,
  Body extends Schema = Schema,
  Response extends Schema | undefined = Schema | undefined,
> {
  readonly summary: string
  /** A fault is reported as `not_found`: a malformed id gets the same error as an unknown one. */
  readonly params?: Params
  /** Other parameters are rejected (query.ts); without it, all parameters are ignored. */
  readonly query?: Query
  /** Without it, a body is ignored. */
  readonly body?: Body
  /** No body stands for an empty object. */
  readonly isBodyOptional?: true
  /** Default: 200, or 204 without a response. */
  readonly status?: 201 | 202
  readonly response?: Response
  /** Errors besides those that follow from the rest of the declaration. */
  readonly errors?: readonly ErrorCode[]
  /** Bytes are the text of the response. A method, so that endpoints with different inputs fit into one list. */
  handle(
    call: Call<Who, z.output<Params>, z.output<Query>, z.output<Body>>,
  ): Response extends Schema ? Promise<Shown<z.output<Response>> | Buffer | SharedText> : Promise<void>
}

export const statusOf = ({ status, response }: Endpoint): number => status ?? (response === undefined ? 204 : 200)

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface Route {
  /** operationId in the document. */
  readonly id: string
  readonly method: Method
  /** Below {base_url}, as in OpenAPI: `/checks/{id}`. */
  readonly path: `/${string}`
  /** Null: without a credential, and without a rate limit. */
  readonly scope: Scope | null
  readonly endpoint: Endpoint
  /** What a successful call adds to the audit log. Empty for reads and for calls that change no configuration. */
  readonly audits: readonly AuditAction[]
  /** The id of the same call by the method that documents use. */
  readonly sameAs?: string
}

type Declare<Who extends Caller | null> = <
  P extends Schema,
  Q extends z.ZodObject,
  B extends Schema,
  A extends Schema | undefined = undefined,
>(
  declared: Endpoint<Who, P, Q, B, A>,
) => Endpoint<Who, P, Q, B, A>

export const endpoint: Declare<Caller> = (declared) => declared

/** Without a credential. */
export const openEndpoint: Declare<null> = (declared) => declared
