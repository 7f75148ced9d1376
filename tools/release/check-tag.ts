/**
 * `node tools/release/check-tag.ts`: fails unless the tag that started the workflow is that of the version: what is
 * published has both names.
 */

import { readVersion } from './assets.ts'

const [tag, version] = [process.env.GITHUB_REF_NAME, await readVersion()]
if (tag !== `v${version}`) throw new Error(`the tag is ${tag}, and package.json has the version ${version}`)
