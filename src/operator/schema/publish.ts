/** spec.publish: where the operator writes the ping URL (design, section 6, "Publishing"). */

import { z } from 'zod'
import { DEFAULT_KEY, GROUP, LABEL_LENGTH, MANAGED_BY_LABEL, OBJECT_NAME_LENGTH } from '../names.ts'
import { entries, oneOf, type Rule, SUBDOMAIN, shaped, text } from './fields.ts'

export const PUBLISH_KINDS = ['Secret', 'ConfigMap', 'None'] as const

/** Our own limits: enough for the keys that other tools look for, and within CEL's cost budget. */
const LABELS = 16
const ANNOTATIONS = 16
const ANNOTATION_LENGTH = 1_024

/** The value of a label, and a key after its prefix. */
const WORD = '[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?'

/** Each namespace has the first, which belongs to the cluster. The second holds the operator's own credentials. */
const RESERVED_NAMES = ['kube-root-ca.crt', 'heartbeat-operator']

const publishKind = oneOf(
  PUBLISH_KINDS,
  'Secret, ConfigMap or None. Anyone who knows the ping URL can report a success, and many people can read a ConfigMap: prefer Secret. None: nowhere. Default: Secret. Further values may be added',
).default('Secret')

const publishName = text({
  max: OBJECT_NAME_LENGTH,
  description:
    'Name of the Secret or ConfigMap. The operator does not change an existing one that it did not create, unless that one has the annotation heartbeat-operator.io/adopt: "true". Default: metadata.name with the suffix -heartbeat, shortened to 253 characters by a hash. Example: nightly-backup-heartbeat',
  rules: [
    shaped(
      SUBDOMAIN,
      'must be a name of a Secret or ConfigMap: a-z, 0-9, - and ., beginning and ending with a letter or digit, such as nightly-backup-heartbeat',
    ),
    {
      cel: `!(self in [${RESERVED_NAMES.map((name) => `'${name}'`).join(', ')}])`,
      holds: (name) => !RESERVED_NAMES.includes(name),
      message: `must not be ${RESERVED_NAMES.join(' or ')}, which belong to the cluster and to the operator: give another, or leave it out`,
      reason: 'FieldValueForbidden',
    },
  ],
})

/**
 * Variables that decide what a process loads, runs, trusts or connects to. With envFrom the key is a variable of the container, and the
 * URL its value.
 */
const STEERING_KEYS = [
  'PATH|HOME|SHELL|TMPDIR|IFS|ENV|CDPATH|PS4|PROMPT_COMMAND|EDITOR|VISUAL|PAGER|BASH_ENV|BASHOPTS|SHELLOPTS',
  '(LD|DYLD)_.*|KUBERNETES_(SERVICE|PORT).*|KUBECONFIG|GCONV_PATH|GLIBC_TUNABLES|LOCPATH|NLSPATH|HOSTALIASES|LOCALDOMAIN|RES_OPTIONS',
  'NODE_(OPTIONS|PATH|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED)|PYTHON[A-Z0-9]+|PERL5?(LIB|OPT|DB)|RUBY(LIB|OPT)|GODEBUG',
  'JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH|DOTNET_STARTUP_HOOKS|PHPRC|PHP_INI_SCAN_DIR|LUA_(C?)PATH',
  'GIT_(SSH|SSH_COMMAND|EXEC_PATH|ASKPASS|CONFIG)|OPENSSL_(CONF|MODULES)|SSL_CERT_(FILE|DIR)|CURL_(HOME|CA_BUNDLE)',
  'REQUESTS_CA_BUNDLE|(HTTP|HTTPS|ALL|NO|FTP)_PROXY|(http|https|all|no|ftp)_proxy',
].join('|')
const steering = shaped(STEERING_KEYS, '')

const publishKey = text({
  max: OBJECT_NAME_LENGTH,
  description: `Key in its data that holds the ping URL. With envFrom it is the name of the environment variable. Default: ${DEFAULT_KEY}. Example: BACKUP_PING_URL`,
  rules: [
    shaped(
      '[A-Za-z_][A-Za-z0-9_]*',
      'must be the name of an environment variable: letters, digits and _, not beginning with a digit, such as HEARTBEAT_URL',
    ),
    {
      cel: `!${steering.cel}`,
      holds: (key) => !steering.holds!(key),
      message:
        'must not be a variable that controls a process, such as PATH, LD_PRELOAD or NODE_OPTIONS: give a name of its own, such as BACKUP_PING_URL',
      reason: 'FieldValueForbidden',
    },
  ],
}).default(DEFAULT_KEY)

const keyShape = shaped(
  `(${SUBDOMAIN}/)?${WORD}`,
  'must have keys such as team or example.com/team: up to 63 letters, digits, -, _ and ., after a prefix or without one',
)
const KEY_RULE: Rule<Record<string, string>> = {
  ...keyShape,
  cel: `self.all(k, ${keyShape.cel.replace('self.', 'k.')})`,
  holds: (entries) => Object.keys(entries).every(keyShape.holds!),
}

const labels = entries({
  max: LABELS,
  value: text({
    max: LABEL_LENGTH,
    description: `Value of the label, at most ${LABEL_LENGTH} characters.`,
    rules: [
      shaped(
        `(${WORD})?`,
        'must be the value of a label: letters, digits, -, _ and ., beginning and ending with a letter or digit',
      ),
    ],
  }),
  description: `Labels of the Secret or ConfigMap, in addition to those of the operator, at most ${LABELS}. Default: none.`,
  rules: [
    KEY_RULE,
    {
      cel: `self.all(k, !k.startsWith('${GROUP}/') && k != '${MANAGED_BY_LABEL}')`,
      holds: (labels) => Object.keys(labels).every((key) => !key.startsWith(`${GROUP}/`) && key !== MANAGED_BY_LABEL),
      message: `must not hold ${MANAGED_BY_LABEL} nor a key that begins with ${GROUP}/: these are set by the operator`,
      reason: 'FieldValueForbidden',
    },
  ],
})

const annotations = entries({
  max: ANNOTATIONS,
  value: text({
    max: ANNOTATION_LENGTH,
    description: `Value of the annotation, at most ${ANNOTATION_LENGTH} characters.`,
  }),
  description: `Annotations of the Secret or ConfigMap, at most ${ANNOTATIONS}. Default: none.`,
  rules: [
    KEY_RULE,
    {
      cel: `self.all(k, !k.startsWith('${GROUP}/'))`,
      holds: (annotations) => Object.keys(annotations).every((key) => !key.startsWith(`${GROUP}/`)),
      message: `must not hold a key that begins with ${GROUP}/: these steer the operator`,
      reason: 'FieldValueForbidden',
    },
  ],
})

export const publish = z.object(
  {
    kind: publishKind,
    name: publishName.optional(),
    key: publishKey,
    labels: labels.optional(),
    annotations: annotations.optional(),
  },
  'must be an object',
)
