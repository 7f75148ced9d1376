module heartbeat-operator/test/cluster/programs/pause

go 1.26.0
