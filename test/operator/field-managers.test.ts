import { testFieldManagers } from '../support/field-managers.ts'
import { useScene } from './scene.ts'

testFieldManagers(useScene(), 'default')
