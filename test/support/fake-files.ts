/** A file system in memory that fails when asked to, and that loses what was not synced; test/unit/spool/files.contract.test.ts compares it with a real one. */

import { basename, dirname } from 'node:path'
import { SpoolRejected } from '../../src/spool/errors.ts'
import type { File, Files } from '../../src/spool/files.ts'
import type { Random } from './random.ts'

interface Inode {
  live: Buffer
  durable: Buffer
}

type Names = Map<string, Inode>
type Operation = Exclude<Extract<keyof File | keyof Files, string>, 'lock' | 'stat' | 'close'>

const failure = (code: string, what = code) => Object.assign(new Error(`${code}: ${what}`), { code })

export class FakeFiles implements Files {
  /** Bytes on the disk; a write takes what fits, the next one fails with ENOSPC. */
  capacity = Number.POSITIVE_INFINITY
  /** The code of the error with which an operation fails, before it changes anything. */
  faultOf: (operation: Operation, path: string) => string | undefined = () => undefined
  /** Most bytes of one write. */
  mostWritten = Number.POSITIVE_INFINITY
  openFiles = 0
  readonly counts: Partial<Record<Operation, number>> = {}
  #folders = new Set(['/'])
  #live: Names = new Map()
  #durable: Names = new Map()
  /** Changes of names that no sync of the folder has covered, in order. */
  #pending: { folder: string; apply: (names: Names) => void }[] = []
  #locks = new Set<string>()

  #enter(operation: Operation, path: string): void {
    this.counts[operation] = (this.counts[operation] ?? 0) + 1
    const code = this.faultOf(operation, path)
    if (code !== undefined) throw failure(code, `${operation} ${path}`)
  }

  #change(folder: string, apply: (names: Names) => void): void {
    apply(this.#live)
    this.#pending.push({ folder, apply })
  }

  used = () => [...new Set(this.#live.values())].reduce((sum, { live }) => sum + live.length, 0)
  names = () => [...this.#live.keys()].map((path) => basename(path)).sort()
  content = (path: string) => Buffer.from(this.#find(path).live)
  put(path: string, bytes: Buffer): void {
    const inode = { live: Buffer.from(bytes), durable: Buffer.from(bytes) }
    this.#live.set(path, inode)
    this.#durable.set(path, inode)
  }

  /** kill -9 of the process: its locks end. */
  kill(): void {
    this.#locks.clear()
    this.faultOf = () => undefined
  }

  /** The machine loses power: of what was not synced, any part may be there. */
  crash(random: Random): void {
    this.kill()
    for (const { apply } of this.#pending.splice(0, random.int(0, this.#pending.length))) apply(this.#durable)
    this.#pending = []
    for (const inode of new Set(this.#durable.values())) {
      inode.durable = inode.live = mix(inode, random)
    }
    this.#live = new Map(this.#durable)
  }

  #find(path: string): Inode {
    const inode = this.#live.get(path)
    if (inode === undefined) throw failure('ENOENT', path)
    return inode
  }

  mkdir = async (path: string): Promise<string | undefined> => {
    this.#enter('mkdir', path)
    if (this.#live.has(path)) throw failure('EEXIST', path)
    if (this.#folders.has(path)) return undefined
    const above = await this.mkdir(dirname(path))
    this.#folders.add(path)
    return above ?? path
  }

  readdir = async (path: string): Promise<string[]> => {
    this.#enter('readdir', path)
    return [...this.#live.keys()].filter((name) => dirname(name) === path).map((name) => basename(name))
  }

  rename = async (from: string, to: string): Promise<void> => {
    this.#enter('rename', to)
    const inode = this.#find(from)
    this.#change(dirname(to), (names) => {
      names.delete(from)
      names.set(to, inode)
    })
  }

  unlink = async (path: string): Promise<void> => {
    this.#enter('unlink', path)
    this.#find(path)
    this.#change(dirname(path), (names) => names.delete(path))
  }

  syncFolder = async (path: string): Promise<void> => {
    this.#enter('syncFolder', path)
    const covered = this.#pending.filter(({ folder }) => folder === path)
    for (const { apply } of covered) apply(this.#durable)
    this.#pending = this.#pending.filter(({ folder }) => folder !== path)
  }

  lock = async (path: string): Promise<() => void> => {
    if (this.#locks.has(path)) throw new SpoolRejected(`another process uses this folder: ${path} is locked`)
    this.#locks.add(path)
    return () => this.#locks.delete(path)
  }

  open = async (path: string, flags: 'r' | 'r+' | 'w'): Promise<File> => {
    this.#enter('open', path)
    if (flags === 'w') {
      const known = this.#live.get(path)
      if (known !== undefined) known.live = Buffer.alloc(0)
      else {
        const made: Inode = { live: Buffer.alloc(0), durable: Buffer.alloc(0) }
        this.#change(dirname(path), (names) => names.set(path, made))
      }
    }
    const inode = this.#find(path)
    const enter = (operation: Operation) => this.#enter(operation, path)
    this.openFiles += 1
    const close = async () => {
      this.openFiles -= 1
    }
    return {
      read: async (into, offset, length, position) => {
        enter('read')
        return { bytesRead: inode.live.subarray(position, position + length).copy(into, offset) }
      },
      write: async (from, offset, length, position) => {
        enter('write')
        if (flags === 'r') throw failure('EBADF')
        const free = this.capacity - this.used() + Math.max(0, inode.live.length - position)
        const bytesWritten = Math.min(length, this.mostWritten, Math.max(0, free))
        if (bytesWritten === 0 && length > 0) throw failure('ENOSPC')
        const grown = resize(inode.live, Math.max(inode.live.length, position + bytesWritten))
        from.copy(grown, position, offset, offset + bytesWritten)
        inode.live = grown
        return { bytesWritten }
      },
      truncate: async (length) => {
        enter('truncate')
        inode.live = resize(inode.live, length)
      },
      datasync: async () => {
        enter('datasync')
        inode.durable = Buffer.from(inode.live)
      },
      stat: async () => ({ size: inode.live.length }),
      close,
      [Symbol.asyncDispose]: close,
    }
  }
}

function resize(bytes: Buffer, length: number): Buffer {
  const resized = Buffer.alloc(length)
  bytes.copy(resized)
  return resized
}

const SECTOR_BYTES = 16

/** For `crash`: all that was not synced is lost. */
export const LOSE_ALL: Random = {
  int: (min) => min,
  chance: () => false,
  pick: (list) => list[0]!,
  bytes: Buffer.alloc,
  word: () => '',
}

/** A length between both, and of each piece in which they differ the one, the other, or zeros where the file grew. */
function mix({ live, durable }: Inode, random: Random): Buffer {
  if (live.equals(durable)) return live
  const length = random.int(Math.min(live.length, durable.length), Math.max(live.length, durable.length))
  const mixed = resize(durable, length)
  if (random.chance(0.5)) return resize(live, length)
  for (let at = 0; at < length; at += SECTOR_BYTES) {
    if (random.chance(0.5)) live.copy(mixed, at, at, Math.min(at + SECTOR_BYTES, live.length))
  }
  return mixed
}
