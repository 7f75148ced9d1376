/** Where the programs of the tests can lie: in PATH, and in the user's cache folder. */

import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, isAbsolute, join } from 'node:path'
import type { Environment } from './programs.ts'

/** Ours in the user's cache folder: what is built or fetched for the tests, once. */
export function cacheFolder({ XDG_CACHE_HOME, HOME }: Environment): string {
  // The XDG base directory specification: a relative path is to be ignored.
  const isGiven = XDG_CACHE_HOME !== undefined && isAbsolute(XDG_CACHE_HOME)
  return join(isGiven ? XDG_CACHE_HOME : join(HOME ?? homedir(), '.cache'), 'heartbeat-operator')
}

/** The absolute path of a program, from the first of the folders that has it; null when none has. */
export async function findIn(folders: readonly string[], name: string): Promise<string | null> {
  for (const folder of folders) if (await isProgram(join(folder, name))) return join(folder, name)
  return null
}

export const listPath = ({ PATH = '' }: Environment): string[] => PATH.split(delimiter).filter(isAbsolute)

export async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
