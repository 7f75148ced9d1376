/**
 * Arrays as PostgreSQL's binary parameters (array_recv in its source): a Buffer goes through pg untouched, where a text literal
 * would be put together here and taken apart there.
 */

const INT2 = 21
const INT4 = 23
const INT8 = 20
const BYTEA = 17
const TEXT = 25
const XID = 28
const UUID = 2950
const TIMESTAMPTZ = 1184
const JSONB = 3802

const HEADER_BYTES = 20
const TWO_32 = 2 ** 32
/** PostgreSQL counts microseconds from 2000-01-01. */
const POSTGRES_EPOCH_US = Date.UTC(2000, 0, 1) * 1_000

type Nullable<T> = readonly (T | null)[]

export const int2Array = (values: Nullable<number>) =>
  fixed(INT2, 2, values, (buffer, value, at) => buffer.writeInt16BE(value, at))
export const int4Array = (values: Nullable<number>) =>
  fixed(INT4, 4, values, (buffer, value, at) => buffer.writeInt32BE(value, at))
/** Transaction ids: unsigned. */
export const xidArray = (values: Nullable<number>) =>
  fixed(XID, 4, values, (buffer, value, at) => buffer.writeUInt32BE(value, at))
export const int8Array = (values: Nullable<number>) => fixed(INT8, 8, values, writeInt64)
/** Milliseconds since the epoch; the fraction is kept to the microsecond. */
export const instantArray = (values: Nullable<number>) =>
  fixed(TIMESTAMPTZ, 8, values, (buffer, value, at) =>
    writeInt64(buffer, Math.round(value * 1_000) - POSTGRES_EPOCH_US, at),
  )
/** Sixteen bytes, or the text form. */
export const uuidArray = (values: Nullable<Buffer | string>) =>
  fixed(UUID, 16, values, (buffer, value, at) =>
    typeof value === 'string' ? buffer.write(value.replaceAll('-', ''), at, 'hex') : value.copy(buffer, at),
  )
export const byteaArray = (values: Nullable<Buffer>) => varying(BYTEA, values)
export const textArray = (values: Nullable<string>) =>
  varying(
    TEXT,
    values.map((value) => (value === null ? null : Buffer.from(value))),
  )
/** The first byte is the version of the format. */
export const jsonbArray = (values: Nullable<unknown>) =>
  varying(
    JSONB,
    values.map((value) => (value === null ? null : Buffer.from(`\u0001${JSON.stringify(value)}`))),
  )

/** Numbers beyond 32 bits without BigInt; exact within 2^53. */
function writeInt64(buffer: Buffer, value: number, at: number): void {
  const high = Math.floor(value / TWO_32)
  buffer.writeInt32BE(high, at)
  buffer.writeUInt32BE(value - high * TWO_32, at + 4)
}

function fixed<T>(
  oid: number,
  size: number,
  values: Nullable<T>,
  write: (buffer: Buffer, value: T, at: number) => unknown,
): Buffer {
  let nulls = 0
  for (const value of values) if (value === null) nulls += 1
  const buffer = Buffer.allocUnsafe(HEADER_BYTES + values.length * 4 + (values.length - nulls) * size)
  let at = writeHeader(buffer, oid, values.length, nulls > 0)
  for (const value of values) {
    at = buffer.writeInt32BE(value === null ? -1 : size, at)
    if (value === null) continue
    write(buffer, value, at)
    at += size
  }
  return buffer
}

function varying(oid: number, values: Nullable<Buffer>): Buffer {
  const header = Buffer.allocUnsafe(HEADER_BYTES)
  writeHeader(header, oid, values.length, values.includes(null))
  const parts: Buffer[] = [header]
  for (const value of values) {
    const length = Buffer.allocUnsafe(4)
    length.writeInt32BE(value === null ? -1 : value.length)
    parts.push(length)
    if (value !== null) parts.push(value)
  }
  return Buffer.concat(parts)
}

function writeHeader(buffer: Buffer, oid: number, length: number, hasNull: boolean): number {
  buffer.writeInt32BE(1, 0)
  buffer.writeInt32BE(hasNull ? 1 : 0, 4)
  buffer.writeInt32BE(oid, 8)
  buffer.writeInt32BE(length, 12)
  buffer.writeInt32BE(1, 16)
  return HEADER_BYTES
}
