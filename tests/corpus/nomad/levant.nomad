job "[[ .name ]]" {
  datacenters = [[ .datacenters | toJson ]]
  group "g" {
    count = [[ or .count 2 ]]
    task "[[ env "TASK" ]]" {
      driver = "docker"
      config {
        image = "registry.example/[[ .image ]]:[[ .tag ]]"
        args  = ["--env", "[[ .env ]]", "--fixed"]
      }
      resources {
        cpu    = [[ .cpu ]]
        memory = [[ .memory ]]
      }
    }
  }
}
