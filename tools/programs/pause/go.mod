module heartbeat-operator/tools/programs/pause

go 1.26.0
