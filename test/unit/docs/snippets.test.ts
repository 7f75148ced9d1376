/** docs/use/pings.md has the programs of the dashboard. Only the URL, and the job, come from elsewhere. */

import { expect, it } from 'vitest'
import { readText } from '../../support/documents.ts'

const DOCUMENT = readText('docs/use/pings.md')

/** By language: the file, and what the document has instead of its parts. */
const PROGRAMS: Record<string, [file: string, differences: [inFile: string, inDocument: string][]]> = {
  bash: ['job.bash', [["url='{{url}}'\n", 'url=$HEARTBEAT_URL\n']]],
  python: [
    'job.py',
    [
      ['import sys\n', 'import os\nimport sys\n'],
      [
        'URL = "{{url}}"\n\n\ndef main():\n    print("here goes your job")\n',
        'from your_job import main\n\nURL = os.environ["HEARTBEAT_URL"]\n',
      ],
    ],
  ],
  js: [
    'job.mjs',
    [
      ["'node:timers/promises'\n", "'node:timers/promises'\nimport { main } from './your-job.js'\n"],
      ["'{{url}}'\n\nasync function main() {\n  console.log('here goes your job')\n}\n", 'process.env.HEARTBEAT_URL\n'],
    ],
  ],
  go: [
    'job.go',
    [
      ['\t"fmt"\n', ''],
      ['\t"net/url"\n', '\t"net/url"\n\t"os"\n'],
      [
        'const pingURL = "{{url}}"\n\nfunc yourJob() error {\n\tfmt.Println("here goes your job")\n\treturn nil\n}\n',
        'var pingURL = os.Getenv("HEARTBEAT_URL")\n',
      ],
    ],
  ],
  powershell: ['job.ps1', [["$Url = '{{url}}'\n", '$Url = $env:HEARTBEAT_URL\n']]],
}

it.each(Object.entries(PROGRAMS))('%s', (language, [file, differences]) => {
  let program = readText(`src/http/dashboard/pages/checks/snippets/${file}`)
  for (const [inFile, inDocument] of differences) {
    expect(program.split(inFile)).toHaveLength(2)
    program = program.replace(inFile, () => inDocument)
  }
  expect(DOCUMENT).toContain(`\`\`\`${language}\n${program}\`\`\`\n`)
})
