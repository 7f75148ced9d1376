/** The service that clients of this lane talk to, and its document in a file. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startTestApp, type TestApp } from '../support/app.ts'

export { startTestApp, type TestApp }

/** Writes what the service serves. Returns the path of the file. */
export async function writeDocument(app: TestApp, folder: string): Promise<string> {
  const file = join(folder, 'openapi.json')
  await writeFile(file, Buffer.from(await (await fetch(`${app.apiUrl}/openapi.json`)).arrayBuffer()))
  return file
}

/** The addresses and the credential, as the programs of this lane read them. */
export const environmentOf = ({ apiUrl, pingUrl, apiKey, projectId }: TestApp) => ({
  BASE_URL: apiUrl,
  PING_URL: pingUrl,
  API_KEY: apiKey,
  PROJECT_ID: projectId,
})
