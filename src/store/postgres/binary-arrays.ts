/**
 * Arrays as binary parameters of PostgreSQL (array_recv in its source). pg sends a Buffer as it is; a text literal would have to be built here
 * and parsed by the server. They throw RangeError for a number that does not fit.
 */

const BOOL = 16
const INT2 = 21
const INT4 = 23
const INT8 = 20
const BYTEA = 17
const TEXT = 25
const UUID = 2950
const TIMESTAMPTZ = 1184
const JSONB = 3802

const HEADER_BYTES = 20
const TWO_15 = 2 ** 15
const TWO_31 = 2 ** 31
const TWO_32 = 2 ** 32
const TWO_63 = 2 ** 63
/** PostgreSQL counts microseconds from 2000-01-01. */
const POSTGRES_EPOCH_US = Date.UTC(2000, 0, 1) * 1_000

type Nullable<T> = readonly (T | null)[]

export const boolArray = (values: Nullable<boolean>) =>
  fixed(BOOL, 1, values, ({ view }, value, at) => view.setUint8(at, value ? 1 : 0))
export const int2Array = (values: Nullable<number>) =>
  fixed(INT2, 2, values, ({ view }, value, at) => view.setInt16(at, within(value, -TWO_15, TWO_15)))
export const int4Array = (values: Nullable<number>) =>
  fixed(INT4, 4, values, ({ view }, value, at) => view.setInt32(at, within(value, -TWO_31, TWO_31)))
export const int8Array = (values: Nullable<number>) => fixed(INT8, 8, values, writeInt64)
/** Milliseconds since the epoch; the fraction is kept to the microsecond. */
export const instantArray = (values: Nullable<number>) =>
  fixed(TIMESTAMPTZ, 8, values, (target, value, at) =>
    writeInt64(target, Math.round(value * 1_000) - POSTGRES_EPOCH_US, at),
  )
/** Sixteen bytes, or the text form. */
export const uuidArray = (values: Nullable<Buffer | string>) =>
  fixed(UUID, 16, values, ({ buffer }, value, at) => {
    if (typeof value === 'string') buffer.write(value.replaceAll('-', ''), at, 'hex')
    else buffer.set(value, at)
  })
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

/** The view writes numbers without the checks of Buffer's methods. */
interface Target {
  readonly buffer: Buffer
  readonly view: DataView
}

/** Numbers beyond 32 bits without BigInt; exact within 2^53. */
function writeInt64({ view }: Target, value: number, at: number): void {
  const high = Math.floor(within(value, -TWO_63, TWO_63) / TWO_32)
  view.setInt32(at, high)
  view.setUint32(at + 4, value - high * TWO_32)
}

/** A view would truncate a number that does not fit. */
function within(value: number, least: number, above: number): number {
  if (value >= least && value < above) return value
  throw new RangeError(`${value} is not a number from ${least} to ${above - 1}`)
}

/** Loops by index: for arrays of mixed kinds, iterators cost more than the writes. */
function fixed<T>(
  oid: number,
  size: number,
  values: Nullable<T>,
  write: (target: Target, value: T, at: number) => void,
): Buffer {
  let nulls = 0
  for (let i = 0; i < values.length; i += 1) if (values[i] === null) nulls += 1
  const buffer = Buffer.allocUnsafe(HEADER_BYTES + values.length * 4 + (values.length - nulls) * size)
  const view = new DataView(buffer.buffer, buffer.byteOffset, buffer.length)
  const target = { buffer, view }
  let at = writeHeader(buffer, oid, values.length, nulls > 0)
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i]!
    view.setInt32(at, value === null ? -1 : size)
    at += 4
    if (value === null) continue
    write(target, value, at)
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
