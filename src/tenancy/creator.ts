import type { Caller, Creator } from '../domain/access.ts'

export function toCreator({ kind, id, name }: Caller): Creator {
  return { kind, id, name }
}
